<?php
function_exists('quiet_wait') || eval('function quiet_wait() { usleep(random_int(1, 2000)); return error_reporting(); }');
$normal = error_reporting();
@trigger_error("last of $m", E_USER_NOTICE);
meet('a');
echo error_get_last()['message'];
$silent = @quiet_wait();
meet('b');
echo $silent === 4437 ? ' silent' : " $silent", error_reporting() === $normal ? ' loud' : ' still silent';
error_clear_last();
meet('c');
echo error_get_last() === null ? '' : ' left';
