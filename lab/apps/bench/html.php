<?php
for ($i = 0; $i < 50; $i++) {
    echo str_repeat('x', 1023), "\n";
}
