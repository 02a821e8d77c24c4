<?php
$c = curl_init('http://127.0.0.1:__CLOSED__/');
curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
meet('a');
echo var_export(curl_exec($c), true), curl_errno($c);
$c = curl_init("http://127.0.0.1:__PORT__/$m");
curl_setopt($c, CURLOPT_WRITEFUNCTION, function () use ($m) {
    pause();
    throw new Exception($m);
});
try {
    curl_exec($c);
} catch (Exception $e) {
    echo $e->getMessage();
}
