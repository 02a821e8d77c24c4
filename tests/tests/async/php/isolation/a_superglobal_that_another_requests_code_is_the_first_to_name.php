<?php
meet('a');
require_once __DIR__ . '/named.php';
meet('b');
echo named($m);
meet('c');
echo named('another');
