<?php
$odd = isset($_GET['odd']);
if ($odd) {
    set_error_handler(function ($no, $text) {
        usleep(2000);
        echo '[', $text, ']';
        return true;
    });
}
meet('a');
$seen = @trigger_error("said in $m", E_USER_WARNING);
meet('b');
$last = error_get_last();
echo $odd ? ($last === null ? $m : 'foreign') : $last['message'];
