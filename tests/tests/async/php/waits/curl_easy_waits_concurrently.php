<?php
$c = curl_init("http://127.0.0.1:PORT/$m");
$seen = '';
curl_setopt($c, CURLOPT_HEADERFUNCTION, function ($c, $line) use (&$seen) {
    pause();
    $seen .= str_starts_with($line, 'X-Path') ? trim($line) : '';
    return strlen($line);
});
curl_setopt($c, CURLOPT_WRITEFUNCTION, function ($c, $data) {
    usleep(500);
    echo $data;
    return strlen($data);
});
curl_exec($c);
echo $seen, curl_getinfo($c, CURLINFO_RESPONSE_CODE), curl_error($c);
