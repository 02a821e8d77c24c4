<?php
$in = file_get_contents('php://input');
echo $_SERVER['REQUEST_METHOD'], ' ', strlen($in), ' ', md5($in), ' ', $_SERVER['CONTENT_LENGTH'] ?? '-';
