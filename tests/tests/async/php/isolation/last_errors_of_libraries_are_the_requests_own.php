<?php
$odd = (int) preg_replace('/[^0-9]/', '', $m) % 2;
$odd ? json_decode('{') : json_decode('{}');
$odd ? @preg_match('/(?:\D+|<\d+>)*[!?]/', 'foobar foobar foobar') : preg_match('/a/', 'a');
meet('a');
echo json_last_error() === ($odd ? JSON_ERROR_SYNTAX : 0) && preg_last_error() === ($odd ? PREG_BACKTRACK_LIMIT_ERROR : 0) ? $m : 'foreign';
