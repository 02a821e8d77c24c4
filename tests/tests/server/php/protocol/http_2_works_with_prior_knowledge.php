<?php
echo $_SERVER['SERVER_PROTOCOL'], ' ', $_SERVER['HTTP_HOST'], ' ', $_SERVER['REQUEST_SCHEME'], ' ', strlen(file_get_contents('php://input'));
