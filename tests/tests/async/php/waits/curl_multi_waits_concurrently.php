<?php
$multi = curl_multi_init();
$all = [];
foreach ([1, 2] as $i) {
    $all[] = $c = curl_init("http://127.0.0.1:__PORT__/$m");
    curl_setopt($c, CURLOPT_RETURNTRANSFER, true);
    curl_multi_add_handle($multi, $c);
}
do {
    curl_multi_exec($multi, $running);
    if ($running) {
        curl_multi_select($multi, 5);
    }
}
while ($running);
foreach ($all as $c) {
    echo curl_multi_getcontent($c);
}
