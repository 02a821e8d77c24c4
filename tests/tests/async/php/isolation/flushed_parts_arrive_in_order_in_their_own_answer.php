<?php
while (ob_get_level()) {
    ob_end_flush();
}
for ($i = 0; $i < 5; $i++) {
    echo "$i$m ";
    flush();
    meet("turn$i");
}
echo 'end';
