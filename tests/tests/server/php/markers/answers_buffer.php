<?php
ob_start(fn ($text) => strrev($text));
echo strrev($_GET['m']);
ob_start();
echo 'dropped';
ob_end_clean();
ob_start();
echo '';
