<?php
require 'gate.php';
for ($part = 0; $part < 3; $part++) {
    echo "part $part\n";
    flush();
    gate("g$part");
}
