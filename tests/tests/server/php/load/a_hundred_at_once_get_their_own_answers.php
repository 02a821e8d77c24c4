<?php
usleep(random_int(0, 2000));
header('X-Mark: ' . $_GET['m']);
setcookie('mark', $_GET['m']);
echo $_GET['m'], ' ', $_POST['m'] ?? '', ' ', $_COOKIE['m'] ?? '', ' ', str_repeat($_GET['m'], 3000);
