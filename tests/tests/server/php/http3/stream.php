<?php
require 'gate.php';
while (ob_get_level() > 0) {
    ob_end_flush();
}
for ($part = 0; $part < 3; $part++) {
    echo "part $part\n";
    flush();
    gate("g$part");
}
