<?php
meet('both');
meet('a');
exec('echo 123456789 > ' . escapeshellarg(__DIR__ . '/data.txt'));
echo filesize(__DIR__ . '/data.txt');
meet('b');
