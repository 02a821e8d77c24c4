<?php
header('Content-Type: text/html');
for ($i = 0; $i < 40; $i++) {
    echo str_repeat($_GET['m'] . ' ', 500);
}
