<?php
$db = new PDO('pgsql:host=127.0.0.1;port=__PORT__;user=tester;dbname=postgres;sslmode=disable', null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]);
