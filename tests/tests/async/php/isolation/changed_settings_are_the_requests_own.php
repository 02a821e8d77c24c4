<?php
ini_set('user_agent', $m);
ini_set('precision', (string) (3 + strlen($m) % 7));
date_default_timezone_set(strlen($m) % 2 ? 'Asia/Tokyo' : 'Europe/Paris');
mb_internal_encoding(strlen($m) % 2 ? 'ISO-8859-1' : 'UTF-8');
error_reporting(E_ALL & ~E_NOTICE & ~(strlen($m) % 2 ? E_WARNING : 0));
$look = fn () => [ini_get('user_agent'), ini_get('precision'), (string) (1 / 3), date_default_timezone_get(), mb_internal_encoding(), error_reporting(), mb_strlen("\u{e4}")];
$before = $look();
meet('a');
$after = $look();
meet('b');
ini_restore('user_agent');
meet('c');
echo $before === $after && ini_get('user_agent') === '' ? $before[0] : json_encode([$before, $after, ini_get('user_agent')]);
