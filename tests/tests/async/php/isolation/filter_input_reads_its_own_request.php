<?php
$a = filter_input(INPUT_GET, 'm');
meet('a');
$_GET['m'] = 'changed';
meet('b');
echo $a, filter_input(INPUT_GET, 'm'), filter_has_var(INPUT_POST, 'm') ? 'post' : '', filter_input(INPUT_SERVER, 'QUERY_STRING');
