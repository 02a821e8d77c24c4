<?php
for ($i = 0; $i < 30; $i++) {
    header("X-Pad-$i: " . str_repeat('p', 250));
}
for ($i = 0; $i < 5000; $i++) {
    headers_send(103);
}
echo 'over';
