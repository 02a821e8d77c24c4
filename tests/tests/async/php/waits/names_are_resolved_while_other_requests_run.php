<?php
meet('a');
echo gethostbyname('localhost'), ' ', gethostbyname('127.0.0.1'), ' ', json_encode(array_unique(gethostbynamel('localhost'))), ' ', gethostbyname('no such name'), ' ', json_encode(@gethostbynamel('no-such-name.invalid')), $m;
$s = @fsockopen('no-such-name.invalid', 80, $no, $text, 5);
echo ' ', json_encode([$s, $no, str_contains($text, 'getaddrinfo')]);
