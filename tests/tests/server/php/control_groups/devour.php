<?php
ini_set('memory_limit', '-1');
for ($kept = [], $i = 0; $i < 600; $i++) {
    $kept[] = str_repeat(chr($i % 256), 1 << 20);
}
echo 'devoured ', count($kept);
