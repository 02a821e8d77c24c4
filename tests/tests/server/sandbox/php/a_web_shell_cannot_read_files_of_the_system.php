<?php
$seen = [];
foreach (['/etc', '/root', '/home', '/', '/proc'] as $d) if (@scandir($d)) $seen[] = $d;
foreach (glob('/etc/*') ?: [] as $f) $seen[] = $f;
foreach (['/etc/shadow', '/etc/group', '/etc/ssl/private'] as $f) if (@file_get_contents($f)) $seen[] = $f;
echo json_encode($seen);
