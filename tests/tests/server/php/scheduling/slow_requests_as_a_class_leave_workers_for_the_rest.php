<?php
require 'gate.php';
if (isset($_GET['g'])) {
    gate($_GET['g']);
} else {
    usleep(20000);
}
echo 'held';
