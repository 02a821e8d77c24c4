<?php
$db = new PDO('mysql:host=127.0.0.1;port=__PORT__', 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT, PDO::ATTR_EMULATE_PREPARES => false]);
