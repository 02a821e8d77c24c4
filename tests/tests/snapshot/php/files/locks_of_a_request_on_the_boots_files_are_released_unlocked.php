<?php
file_put_contents(__DIR__ . '/../locked', "a\nb\n");
$file = fopen(__DIR__ . '/../locked', 'r+');
fgets($file);
