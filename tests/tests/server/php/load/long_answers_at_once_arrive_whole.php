<?php
header('Content-Type: ' . $_GET['t']);
echo substr(str_repeat($_GET['m'] . '-', 20000), 0, (int) $_GET['s']);
