<?php
echo apcu_inc('n'), ' ', ++$n, ' ', json_encode(apcu_fetch('boot')), strlen(apcu_fetch('big') ?: '');
apcu_store('big', str_repeat('x', 70000));
if (apcu_fetch('n') % 5 === 0) {
    apcu_delete('gone');
    apcu_store('gone', range(1, 1000));
}
