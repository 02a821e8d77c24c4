<?php
$out = [];
foreach ($_FILES as $name => $f) {
    foreach ((array) $f['tmp_name'] as $i => $tmp) {
        $error = is_array($f['error']) ? $f['error'][$i] : $f['error'];
        $to = dirname(__DIR__) . '/marks/' . $name . $i;
        $out[] = [$name, is_array($f['name']) ? $f['name'][$i] : $f['name'], $error,
            $error ? null : md5_file($tmp), is_uploaded_file($tmp), $error ? null : move_uploaded_file($tmp, $to),
            $error ? null : (is_file($to) && !file_exists($tmp))];
    }
}
echo json_encode([$_POST, $out, file_get_contents('php://input')], JSON_UNESCAPED_SLASHES);
