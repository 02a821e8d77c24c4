<?php
// From PHP 8.4 on, raising this one is deprecated.
error_reporting(E_ALL & ~E_DEPRECATED);
set_error_handler(function () { echo 'handled;'; return true; }, E_USER_ERROR);
trigger_error('x', E_USER_ERROR);
echo 'goes on';
