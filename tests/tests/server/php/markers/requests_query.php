<?php
usleep(random_int(0, 500));
echo $_GET['m'], ' ', $_SERVER['QUERY_STRING'], ' ', $_REQUEST['m'], ' ', filter_input(INPUT_GET, 'm');
