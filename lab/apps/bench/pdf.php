<?php
header('Content-Type: application/pdf');
for ($i = 0; $i < 50; $i++) {
    echo str_repeat('x', 1023), "\n";
}
