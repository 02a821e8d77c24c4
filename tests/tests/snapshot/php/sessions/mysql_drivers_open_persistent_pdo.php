<?php
$db = new PDO('mysql:host=127.0.0.1;port=__PORT__;dbname=shop', 'tester', '', [PDO::ATTR_PERSISTENT => true, PDO::ATTR_EMULATE_PREPARES => false]);
