<?php
$c = curl_init("http://localhost:PORT/$m");
curl_setopt_array($c, [CURLOPT_RETURNTRANSFER => true, CURLOPT_POSTFIELDS => $m]);
echo curl_exec($c), curl_error($c);
