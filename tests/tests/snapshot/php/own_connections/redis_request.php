<?php
usleep(2000);
global $db;
preg_match('/^id=(\d+) .* name=(\w*) .* db=(\d+) .* multi=(-?\d+) /', $db->rawCommand('CLIENT', 'INFO'), $about);
$about = array_slice($about, 1);
$db->select(5);
$db->set('of', 'request');
$db->watch('of');
$db->multi();
echo json_encode([$id, getmypid(), posix_getppid(), (int) array_shift($about), ...$about]);
