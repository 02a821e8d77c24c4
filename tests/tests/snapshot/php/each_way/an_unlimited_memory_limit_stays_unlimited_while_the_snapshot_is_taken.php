<?php
$held = [];
while (memory_get_usage(true) < 6 << 20) {
    $held[] = str_repeat('x', 500) . count($held);
}
