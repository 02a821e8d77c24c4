<?php
$seen = [getenv()['HOWDAH_NEW'] ?? null];
foreach (['HOWDAH_NEW=1', 'HOWDAH_NEW=2', 'HOWDAH_NEW'] as $change) {
    putenv($change);
    $seen[] = getenv()['HOWDAH_NEW'] ?? null;
}
echo json_encode($seen);
