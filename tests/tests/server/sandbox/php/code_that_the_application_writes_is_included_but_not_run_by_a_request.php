<?php
foreach (['/var/cache/t.php', '/var/t.php'] as $f) {
    file_put_contents(__DIR__ . $f, '<?php return 7;');
    echo json_encode(@include __DIR__ . $f);
}
