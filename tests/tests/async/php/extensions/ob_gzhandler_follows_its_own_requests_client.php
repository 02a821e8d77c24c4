<?php
ob_start(fn ($text, $phase) => ob_gzhandler($text, $phase));
echo $m;
meet('a');
ob_flush();
meet('b');
echo 'end';
ob_end_flush();
