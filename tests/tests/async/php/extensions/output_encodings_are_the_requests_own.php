<?php
__ODD__;
mb_detect_order($odd ? ['ASCII', 'UTF-8'] : ['ASCII', 'EUC-JP']);
mb_http_output($odd ? 'UTF-16BE' : 'UTF-16LE');
header('Content-Type: text/html');
meet('a');
ob_start();
ob_start('mb_output_handler');
echo 'a';
ob_flush();
meet('b');
echo 'b';
ob_end_flush();
$text = bin2hex(ob_get_clean());
header('Content-Type: text/html; charset=x');
echo implode(mb_detect_order()) === ($odd ? 'ASCIIUTF-8' : 'ASCIIEUC-JP') ? '' : 'foreign', $text === ($odd ? '00610062' : '61006200') ? $m : $text;
