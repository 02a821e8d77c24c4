<?php
$c = curl_init("http://127.0.0.1:__PORT__/$m");
curl_setopt($c, CURLOPT_TIMEOUT_MS, 400);
curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
meet('a');
echo var_export(curl_exec($c), true), curl_errno($c), $m;
