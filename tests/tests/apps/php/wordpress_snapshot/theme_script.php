<?php
wp_head(); ?><body <?php body_class(); ?>><?php bloginfo('name'); wp_nav_menu(['theme_location' => 'main']);
        while (have_posts()) { the_post(); the_title('<h2>', '</h2>'); the_content(); the_category(); }
        dynamic_sidebar('side'); wp_footer();