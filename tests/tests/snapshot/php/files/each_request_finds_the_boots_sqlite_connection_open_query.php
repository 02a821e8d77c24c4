<?php
$s = $db->query('SELECT a.name FROM sqlite_master AS a, sqlite_master AS b, t AS c');
$s->fetch();
$GLOBALS['kept'] = $s;
