<?php
require 'gate.php';
gate('w');
for ($i = 0; $i < 3000; $i++) {
    echo 'x';
    flush();
    usleep(1000);
}
mark('went-on');
