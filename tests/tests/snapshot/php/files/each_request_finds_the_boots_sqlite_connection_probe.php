<?php
$one = fn ($sql) => $db->query($sql)->fetchColumn();
echo $one('PRAGMA foreign_keys'), $one('PRAGMA user_version'), $one('PRAGMA case_sensitive_like'), $one('SELECT count(*) FROM sqlite_temp_master'), $one('SELECT count(*) FROM pragma_database_list'), $one('SELECT count(*) FROM t'), $one('PRAGMA locking_mode'), getmypid();
