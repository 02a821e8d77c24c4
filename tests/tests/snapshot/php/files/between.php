<?php
$second = new PDO('sqlite:' . DB, null, null, [PDO::ATTR_PERSISTENT => true]);
$second->exec("INSERT INTO t VALUES ('second')");
echo 1;
