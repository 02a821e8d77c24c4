<?php
__PREPARE__;
$done = [];
foreach ([__LIST__] as $name => $try) {
    try {
        $got = @$try();
    } catch (Throwable $e) {
        $got = false;
    }
    if (is_string($got) ? str_contains($got, 'root:') : $got === true) $done[] = $name;
}
echo json_encode($done);
