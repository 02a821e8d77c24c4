<?php
if (is_file(__DIR__ . '/installed')) {
    putenv('ABSPATH_DIR=' . __DIR__ . '/root');
    require __DIR__ . '/recipe.php';
}
