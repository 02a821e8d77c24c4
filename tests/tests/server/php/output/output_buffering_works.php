<?php
ob_start();
echo 'dropped';
ob_end_clean();
ob_start(fn ($s) => strtoupper($s));
echo 'kept';
header('X-Late: yes');
ob_end_flush();
ob_start();
echo ' open at the end';
