<?php
$db = new PDO('mysql:host=127.0.0.1;port=__PORT__', 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::MYSQL_ATTR_LOCAL_INFILE => true]);
$port = __PORT__;
