<?php
$sizes = fn ($values) => array_map(fn ($value) => strlen($value), $values);
echo json_encode([
    'length' => $_SERVER['CONTENT_LENGTH'],
    'post' => $sizes($_POST),
    'files' => array_column($_FILES, 'error', 'name'),
    'error' => preg_match('/exceeds the limit of (\d+)/', error_get_last()['message'] ?? '', $found) ? $found[1] : null,
    'limit' => ini_get('post_max_size'),
]);
