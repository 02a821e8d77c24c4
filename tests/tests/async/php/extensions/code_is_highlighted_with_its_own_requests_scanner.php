<?php
$out = '';
meet('a');
ob_start(function ($text) use (&$out) {
    usleep(random_int(1, 200));
    $out .= $text;
    return '';
}, 1);
highlight_string("<?php echo '$m'; // $m\n function f(\$a) { return 1; }");
ob_end_clean();
echo substr_count($out, $m), $m;
