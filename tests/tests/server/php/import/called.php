<?php
header('Content-Type: text/plain');
echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['QUERY_STRING'], ' ', json_encode($_GET);
