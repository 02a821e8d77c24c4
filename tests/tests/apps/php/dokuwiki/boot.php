<?php
if (is_file(__DIR__ . '/root/doku.php')) {
    putenv('DOKUWIKI_DIR=' . __DIR__ . '/root');
    require __DIR__ . '/dokuwiki-boot.php';
}
